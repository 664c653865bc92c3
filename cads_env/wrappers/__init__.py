"""Wrappers around the environments: the certificate, lists of identifiers, the twin."""

from cads_env.wrappers.certificate import CertificateWrapper
from cads_env.wrappers.identifier_lists import IdentifierLists
from cads_env.wrappers.twin import IgnoreActions, make_twin

__all__ = ["CertificateWrapper", "IdentifierLists", "IgnoreActions", "make_twin"]
