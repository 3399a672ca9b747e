"""Apache Airflow provider for the TYPO3 extension nr_llm."""

__version__ = "0.1.0"
