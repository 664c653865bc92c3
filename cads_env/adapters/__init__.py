"""The text environment in the shapes of other people's frameworks, one file each.

Each needs its package (`pip install cads-env[inspect]`, `[verifiers]`, `[aviary]`) and is imported
by itself. All of them step `CADSScreenText-v0`: none plays or scores a campaign of its own.
"""
