"""The words that the shell completes and colours."""

from __future__ import annotations


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


KEYWORDS = _words(
    """
    ADD AGGREGATE AGGREGATES ALL AND ANTI ANY AS ASC BEGIN BETWEEN BY CASE CAST CHANGES CLOSE
    CONTINUOUS CREATE CROSS CURRENT_TIMESTAMP DAY DAYS DELETE DESC DESCRIBE DESCRIPTOR DISTINCT DO
    DROP ELSE EMIT END EXCEPT EXISTS EXPLAIN FALSE FOLLOWING FOR FROM FULL GROUP HAVING HOUR HOURS
    IF IN INNER INSERT INTERSECT INTERVAL INTO IS JOIN LATERAL LEFT LIKE LIMIT MATERIALIZED
    MILLISECONDS MINUTE MINUTES NOT NOW NULL NULLS OFFSET ON OR ORDER OUTER OVER PARTITION PRECEDING
    QUERIES QUERY RANGE REPLACE RETAIN RETROACTIVE RIGHT ROW ROWS SECOND SECONDS SELECT SEMI SET
    SHOW SINCE SLIDE STREAM STREAMS TABLE TABLES THEN TO TRIGGER TRIGGERS TRUE UNION UPDATE USING
    VALUES VIEW WATERMARK WEBHOOK WEEK WHEN WHERE WINDOW WITH
    """
)

TYPES = _words(
    """
    ARRAY BIGINT BINARY BOOLEAN DATE DECIMAL DOUBLE FLOAT INT MAP SMALLINT STRING STRUCT TIMESTAMP
    TIMESTAMP_NTZ TINYINT
    """
)

FUNCTIONS = _words(
    """
    abs approx_count_distinct approx_percentile avg ceil coalesce collect_list collect_set concat
    corr count count_if covar_pop covar_samp cumulate date_format date_trunc extract first floor
    greatest hop last least length lower ltrim max max_by median min min_by mode nullif percentile
    percentile_approx regr_slope round rtrim session session_window sqrt stddev stddev_pop
    stddev_samp substring sum to_date to_timestamp trim tumble unix_timestamp upper var_pop var_samp
    variance window
    """
)
