"""The readout: explicit and observed outcomes by group, each source for itself (ADR-176). It recommends nothing."""
