"""The page of readouts in Airflow's UI. This module is imported with the plugin, and so in every process."""

#: Where the page is, below Airflow's own address and without a slash in front: under a path prefix it is relative.
PAGE = "nrllm/"
