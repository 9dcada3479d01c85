-- Analysis: harder SQL over the same streams.

-- A CTE: carriers against the whole network, each quarter of the day.
CREATE CONTINUOUS QUERY against_network AS
WITH f AS (SELECT carrier, dep_delay FROM flights [RANGE 6 HOURS SLIDE 6 HOURS]
           WHERE dep_delay IS NOT NULL),
     network AS (SELECT avg(dep_delay) AS delay FROM f)
SELECT f.carrier, round(avg(f.dep_delay), 1) AS delay, round(max(network.delay), 1) AS network
FROM f CROSS JOIN network
GROUP BY f.carrier;

-- A subquery in FROM: how many routes were bad, not how many flights.
CREATE CONTINUOUS QUERY bad_routes_daily AS
SELECT origin, count(*) AS routes, count_if(delay > 30) AS bad_routes
FROM (SELECT origin, dest, avg(dep_delay) AS delay
      FROM flights [RANGE 1 DAY SLIDE 1 DAY] GROUP BY origin, dest) AS routes
GROUP BY origin;

-- A scalar subquery: carriers that do worse than everybody together.
CREATE CONTINUOUS QUERY worse_than_average AS
SELECT carrier, round(avg(dep_delay), 1) AS delay
FROM flights [RANGE 12 HOURS]
GROUP BY carrier
HAVING avg(dep_delay) > (SELECT avg(dep_delay) FROM flights [RANGE 12 HOURS])
ORDER BY delay DESC;

-- CASE: the shape of delay, not only its mean.
CREATE CONTINUOUS QUERY delay_shape AS
SELECT CASE WHEN dep_delay IS NULL THEN '5 cancelled' WHEN dep_delay > 120 THEN '4 over 2 h'
            WHEN dep_delay > 60 THEN '3 1 to 2 h' WHEN dep_delay > 15 THEN '2 15 to 60 min'
            ELSE '1 on time' END AS class, count(*) AS flights
FROM flights [RANGE 1 DAY SLIDE 1 DAY]
GROUP BY 1
ORDER BY class;

-- Percentiles cannot be merged from parts: they are computed over the window's rows.
CREATE CONTINUOUS QUERY delay_percentiles_daily AS
SELECT origin, percentile(dep_delay, 0.5) AS median, percentile(dep_delay, 0.9) AS p90,
       percentile(dep_delay, 0.99) AS p99
FROM flights [RANGE 1 DAY SLIDE 1 DAY]
GROUP BY origin;

-- UNION ALL: everything that a duty manager should look at, in one list.
CREATE CONTINUOUS QUERY attention_now AS
SELECT 'cancelled' AS what, carrier, flight, origin, scheduled
FROM flights [RANGE 3 HOURS] WHERE dep_delay IS NULL
UNION ALL
SELECT 'over three hours late', carrier, flight, origin, scheduled
FROM flights [RANGE 3 HOURS] WHERE dep_delay > 180;

-- INTERSECT: carriers that fly from both JFK and La Guardia.
CREATE CONTINUOUS QUERY at_both_airports AS
SELECT carrier FROM flights [RANGE 1 DAY] WHERE origin = 'JFK'
INTERSECT
SELECT carrier FROM flights [RANGE 1 DAY] WHERE origin = 'LGA';

-- EXCEPT: destinations of the last two days that nobody left for in the last one.
CREATE CONTINUOUS QUERY destinations_lost AS
SELECT dest FROM flights [RANGE 2 DAYS]
EXCEPT
SELECT dest FROM flights [RANGE 1 DAY] WHERE dep_delay IS NOT NULL;

-- A window function: the three worst carriers of each airport and day.
CREATE CONTINUOUS QUERY worst_carriers_daily AS
SELECT origin, carrier, delay, place
FROM (SELECT origin, carrier, round(avg(dep_delay), 1) AS delay,
             row_number() OVER (PARTITION BY origin ORDER BY avg(dep_delay) DESC) AS place
      FROM flights [RANGE 1 DAY SLIDE 1 DAY]
      WHERE dep_delay IS NOT NULL
      GROUP BY origin, carrier) AS ranked
WHERE place <= 3
ORDER BY origin, place;

-- Did the delay travel with the aircraft? Each leg beside the one before it.
CREATE CONTINUOUS QUERY inherited_delay AS
SELECT tailnum, flight, scheduled, dep_delay, before AS delay_of_leg_before
FROM (SELECT tailnum, flight, scheduled, dep_delay,
             lag(dep_delay) OVER (PARTITION BY tailnum ORDER BY scheduled) AS before
      FROM flights [RANGE 18 HOURS]) AS legs
WHERE dep_delay > 60 AND before > 60
ORDER BY scheduled, tailnum;

-- Over another query: its closed windows are a stream. The worst hour of each day.
CREATE CONTINUOUS QUERY worst_hours AS
SELECT origin, max(delay) AS worst_hour, sum(departures) AS departures
FROM departures_hourly [RANGE 1 DAY SLIDE 1 DAY]
GROUP BY origin;

-- Over another query again: is it getting better or worse?
CREATE CONTINUOUS QUERY delay_trend AS
SELECT origin, window_end AS hour, delay,
       round(delay - lag(delay) OVER (PARTITION BY origin ORDER BY window_end), 1) AS change
FROM departures_hourly [RANGE 6 HOURS]
ORDER BY origin, hour;

-- Over a standing query, which is read like a view.
CREATE CONTINUOUS QUERY very_late_by_carrier AS
SELECT carrier, count(*) AS flights, max(dep_delay) AS worst
FROM very_late_now
GROUP BY carrier;
