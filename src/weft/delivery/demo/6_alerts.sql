-- Alerts: windows that speak before they close. EMIT CHANGES counts every row that has arrived,
-- and takes back what it said when a later row changes it.

-- Many cancellations in half a day.
CREATE CONTINUOUS QUERY cancellation_alert AS
SELECT origin, count(*) AS cancelled
FROM flights [RANGE 12 HOURS SLIDE 12 HOURS]
WHERE dep_delay IS NULL
GROUP BY origin
HAVING count(*) >= 30
EMIT CHANGES;

-- A carrier whose day is falling apart.
CREATE CONTINUOUS QUERY meltdown_alert AS
SELECT carrier, count(*) AS heavily_delayed
FROM flights [RANGE 12 HOURS SLIDE 12 HOURS]
WHERE dep_delay > 90
GROUP BY carrier
HAVING count(*) >= 10
EMIT CHANGES;

-- Gusts that close runways.
CREATE CONTINUOUS QUERY gust_alert AS
SELECT origin, round(max(gust), 0) AS gust
FROM weather [RANGE 6 HOURS SLIDE 6 HOURS]
GROUP BY origin
HAVING max(gust) > 40
EMIT CHANGES;
