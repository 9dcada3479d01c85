-- Departures: the boards that an operations centre keeps on its wall.

-- Tumbling, in Weft's brackets: traffic and delay, hour by hour.
CREATE CONTINUOUS QUERY departures_hourly AS
SELECT origin, count(*) AS departures, count_if(dep_delay IS NULL) AS cancelled,
       round(avg(dep_delay), 1) AS delay
FROM flights [RANGE 1 HOUR SLIDE 1 HOUR]
GROUP BY origin;

-- Tumbling, in Flink's words: each carrier's quarter of the day.
CREATE CONTINUOUS QUERY carriers_quarterly AS
SELECT carrier, count(*) AS departures, round(avg(arr_delay), 1) AS arrival_delay
FROM TABLE(TUMBLE(TABLE flights, DESCRIPTOR(scheduled), INTERVAL '6' HOURS))
GROUP BY carrier, window_start, window_end;

-- Tumbling, in Spark's words: the daily report.
CREATE CONTINUOUS QUERY punctuality_daily AS
SELECT origin, count(*) AS departures,
       round(100 * avg(CASE WHEN dep_delay <= 15 THEN 1.0 ELSE 0.0 END), 1) AS on_time_percent
FROM flights
GROUP BY origin, window(scheduled, '1 day');

-- Only the bad quarters, worst first.
CREATE CONTINUOUS QUERY cancellations_quarterly AS
SELECT origin, carrier, count(*) AS cancelled
FROM flights [RANGE 6 HOURS SLIDE 6 HOURS]
WHERE dep_delay IS NULL
GROUP BY origin, carrier
HAVING count(*) >= 5
ORDER BY cancelled DESC, carrier
LIMIT 8;

-- Where the crowds go.
CREATE CONTINUOUS QUERY busiest_routes_daily AS
SELECT origin, dest, count(*) AS departures
FROM flights [RANGE 1 DAY SLIDE 1 DAY]
GROUP BY origin, dest
ORDER BY departures DESC, origin, dest
LIMIT 5;

-- Hopping, in brackets: a smoother line than hour by hour.
CREATE CONTINUOUS QUERY delay_rolling AS
SELECT origin, round(avg(dep_delay), 1) AS delay, max(dep_delay) AS worst
FROM flights [RANGE 3 HOURS SLIDE 1 HOUR]
GROUP BY origin;

-- Hopping, in Flink's words.
CREATE CONTINUOUS QUERY carriers_rolling AS
SELECT carrier, count(*) AS departures, round(avg(dep_delay), 1) AS delay
FROM TABLE(HOP(TABLE flights, DESCRIPTOR(scheduled), INTERVAL '6' HOURS, INTERVAL '12' HOURS))
GROUP BY carrier, window_start, window_end;

-- Hopping, in Spark's words: share of flights that left within a quarter of an hour.
CREATE CONTINUOUS QUERY punctuality_rolling AS
SELECT window.start AS since, window.end AS upto, carrier,
       round(100 * avg(CASE WHEN dep_delay <= 15 THEN 1.0 ELSE 0.0 END), 1) AS on_time_percent
FROM flights
GROUP BY carrier, window(scheduled, '1 day', '6 hours');

-- Cumulating: the day so far, every six hours, starting again at midnight.
CREATE CONTINUOUS QUERY day_so_far AS
SELECT window_start, window_end, count(*) AS departures,
       count_if(dep_delay IS NULL) AS cancelled, sum(distance) AS miles
FROM TABLE(CUMULATE(TABLE flights, DESCRIPTOR(scheduled), INTERVAL '6' HOURS, INTERVAL '1' DAY))
GROUP BY window_start, window_end;

-- Last n rows: how the last hundred departures went.
CREATE CONTINUOUS QUERY last_hundred AS
SELECT count_if(dep_delay > 15) AS delayed, count_if(dep_delay IS NULL) AS cancelled,
       round(avg(dep_delay), 1) AS delay
FROM flights [ROWS 100];

-- Last n rows with a slide: one line for every 500 departures, each about the last 1,000.
CREATE CONTINUOUS QUERY every_500_departures AS
SELECT count(*) AS departures, count(DISTINCT tailnum) AS aircraft,
       round(avg(dep_delay), 1) AS delay
FROM flights [ROWS 1000 SLIDE 500];

-- Sliding: the last three hours, now.
CREATE CONTINUOUS QUERY punctuality_now AS
SELECT origin, count(*) AS departures, count_if(dep_delay > 15) AS delayed,
       count_if(dep_delay IS NULL) AS cancelled
FROM flights [RANGE 3 HOURS]
GROUP BY origin;

-- Sliding, row by row: flights that left more than two hours late.
CREATE CONTINUOUS QUERY very_late_now AS
SELECT carrier, flight, origin, dest, scheduled, dep_delay
FROM flights [RANGE 6 HOURS]
WHERE dep_delay > 120
ORDER BY dep_delay DESC;

-- Who is flying at the moment.
CREATE CONTINUOUS QUERY carriers_active_now AS
SELECT DISTINCT carrier FROM flights [RANGE 6 HOURS];

-- The whole stream: totals since the beginning.
CREATE CONTINUOUS QUERY totals AS
SELECT count(*) AS departures, count_if(dep_delay IS NULL) AS cancelled,
       count(DISTINCT dest) AS destinations, sum(distance) AS miles
FROM flights;

-- The hall of fame.
CREATE CONTINUOUS QUERY longest_waits AS
SELECT carrier, flight, origin, dest, scheduled, dep_delay
FROM flights
WHERE dep_delay IS NOT NULL
ORDER BY dep_delay DESC
LIMIT 10;

-- Sessions, in Flink's words: aircraft that left New York three times without half a day of rest.
CREATE CONTINUOUS QUERY hard_working_aircraft AS
SELECT tailnum, count(*) AS legs, sum(air_time) AS minutes_in_air
FROM TABLE(SESSION(TABLE flights PARTITION BY tailnum, DESCRIPTOR(scheduled), INTERVAL '12' HOURS))
WHERE air_time IS NOT NULL
GROUP BY tailnum, window_start, window_end
HAVING count(*) >= 3;

-- Sessions in Spark's words: waves of heavy delay, which end after an hour without one.
CREATE CONTINUOUS QUERY delay_waves AS
SELECT origin, count(*) AS flights, round(avg(dep_delay), 1) AS delay, max(dep_delay) AS worst
FROM flights
WHERE dep_delay > 60
GROUP BY origin, session_window(scheduled, '1 hour')
HAVING count(*) >= 5;

-- PSoup's clause: one window for the whole query.
CREATE CONTINUOUS QUERY last_half_day AS
SELECT carrier, count(*) AS departures, max(dep_delay) AS worst
FROM flights
GROUP BY carrier
BEGIN NOW - 12 HOURS END NOW;

-- PSoup again, with a lag: the same hours, yesterday.
CREATE CONTINUOUS QUERY same_hours_yesterday AS
SELECT origin, count(*) AS departures, round(avg(dep_delay), 1) AS delay
FROM flights
GROUP BY origin
BEGIN NOW - 27 HOURS END NOW - 24 HOURS;
