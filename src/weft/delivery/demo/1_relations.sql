-- What flows, and what is looked up.

-- One row per departure from New York, sent when the aircraft leaves (or is cancelled). Its event
-- time is the scheduled departure, so a delayed flight comes out of order.
CREATE STREAM flights (
  carrier STRING, flight INT, tailnum STRING, origin STRING, dest STRING,
  scheduled TIMESTAMP, dep_delay INT, arr_delay INT, air_time INT, distance INT,
  WATERMARK FOR scheduled AS scheduled - INTERVAL 1 HOUR
) RETAIN 30 DAYS;

-- One row per airport and hour. °F, mph, inches, millibar, miles.
CREATE STREAM weather (
  origin STRING, at TIMESTAMP, temp DOUBLE, wind DOUBLE, gust DOUBLE, precip DOUBLE,
  pressure DOUBLE, visibility DOUBLE,
  WATERMARK FOR at AS at
) RETAIN 30 DAYS;

-- A correction of a name should show everywhere, also in answers about the past: retroactive.
CREATE TABLE airlines (carrier STRING, name STRING) RETROACTIVE;

-- These are looked up as they were when each flight arrived: non-retroactive, the default.
CREATE TABLE planes (tailnum STRING, manufacturer STRING, model STRING, seats INT);
CREATE TABLE airports (faa STRING, name STRING, lon DOUBLE);
CREATE TABLE delay_policy (origin STRING, minutes INT);

INSERT INTO delay_policy VALUES ('EWR', 15), ('JFK', 15), ('LGA', 15);
