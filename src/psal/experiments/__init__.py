"""The paper's experiments. Each measures, writes a JSON record, and turns a record into tables and plots."""
