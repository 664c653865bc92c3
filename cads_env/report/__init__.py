"""Reports: what people read of a run. Every number comes from the run's frames and summaries."""
