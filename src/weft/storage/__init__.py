"""Files of a warehouse: durable writes, the inbox of pushed rows, Parquet footers, named crash points."""
