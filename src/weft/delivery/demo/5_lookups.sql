-- Streams beside tables.

-- Names from a retroactive table: a correction reaches the past.
CREATE CONTINUOUS QUERY airlines_total AS
SELECT a.name, count(*) AS departures, round(avg(f.dep_delay), 1) AS delay
FROM flights AS f JOIN airlines AS a ON f.carrier = a.carrier
GROUP BY a.name
ORDER BY departures DESC;

-- A non-retroactive table: each flight is judged by the policy that held when it arrived.
CREATE CONTINUOUS QUERY delayed_by_policy AS
SELECT p.minutes AS allowed_minutes, count(*) AS flights, count_if(f.dep_delay > p.minutes) AS breaches
FROM flights AS f JOIN delay_policy AS p ON f.origin = p.origin
WHERE f.dep_delay IS NOT NULL
GROUP BY p.minutes
ORDER BY allowed_minutes;

-- The same policy, quarter by quarter.
CREATE CONTINUOUS QUERY breaches_quarterly AS
SELECT f.origin, count(*) AS breaches
FROM flights [RANGE 6 HOURS SLIDE 6 HOURS] AS f JOIN delay_policy AS p ON f.origin = p.origin
WHERE f.dep_delay > p.minutes
GROUP BY f.origin;

-- Seats that left, from the register of aircraft.
CREATE CONTINUOUS QUERY seats_quarterly AS
SELECT f.origin, sum(p.seats) AS seats
FROM flights [RANGE 6 HOURS SLIDE 6 HOURS] AS f JOIN planes AS p ON f.tailnum = p.tailnum
WHERE f.dep_delay IS NOT NULL
GROUP BY f.origin;

-- The long way west, by name of the airport.
CREATE CONTINUOUS QUERY west_coast_daily AS
SELECT t.name, count(*) AS departures, round(avg(f.arr_delay), 1) AS arrival_delay
FROM flights [RANGE 1 DAY SLIDE 1 DAY] AS f JOIN airports AS t ON f.dest = t.faa
WHERE t.lon < -115
GROUP BY t.name
ORDER BY departures DESC
LIMIT 5;

-- An outer join keeps the flights whose aircraft nobody knows.
CREATE CONTINUOUS QUERY register_coverage AS
SELECT f.carrier, count(*) AS departures, count(p.tailnum) AS known_aircraft
FROM flights [RANGE 1 DAY SLIDE 1 DAY] AS f LEFT JOIN planes AS p ON f.tailnum = p.tailnum
GROUP BY f.carrier;

-- NOT EXISTS: tail numbers that are missing in the register.
CREATE CONTINUOUS QUERY unregistered_aircraft AS
SELECT DISTINCT f.tailnum, f.carrier
FROM flights [RANGE 1 DAY] AS f
WHERE f.tailnum IS NOT NULL
  AND NOT EXISTS (SELECT 1 FROM planes AS p WHERE p.tailnum = f.tailnum);

-- The other way round: airlines without a single departure in the last twelve hours.
CREATE CONTINUOUS QUERY grounded_airlines AS
SELECT a.name
FROM airlines AS a
WHERE NOT EXISTS (SELECT 1 FROM flights [RANGE 12 HOURS] AS f
                  WHERE f.carrier = a.carrier AND f.dep_delay IS NOT NULL);

-- An anti-join: routes of the last two days that were not flown in the last one.
CREATE CONTINUOUS QUERY routes_lost AS
SELECT DISTINCT d.origin, d.dest
FROM flights [RANGE 2 DAYS] AS d
LEFT ANTI JOIN (SELECT origin, dest FROM flights [RANGE 1 DAY] WHERE dep_delay IS NOT NULL) AS n
  ON d.origin = n.origin AND d.dest = n.dest;
