-- Registered while the pipeline runs, on the eve of the storm of 8 February 2013. They see the
-- days before as well as what comes.

-- Landmark: since the storm began.
CREATE CONTINUOUS QUERY since_storm AS
SELECT origin, count(*) AS scheduled, count_if(dep_delay IS NULL) AS cancelled
FROM flights [SINCE '2013-02-08']
GROUP BY origin;

-- Landmark, in PSoup's words.
CREATE CONTINUOUS QUERY stranded_by_carrier AS
SELECT carrier, count(*) AS cancelled
FROM flights
WHERE dep_delay IS NULL
GROUP BY carrier
ORDER BY cancelled DESC
BEGIN '2013-02-08' END NOW;

-- Snapshot: the two days themselves; the answer stands still once they are over.
CREATE CONTINUOUS QUERY storm_days AS
SELECT carrier, count(*) AS scheduled, count_if(dep_delay IS NULL) AS cancelled,
       round(100 * avg(CASE WHEN dep_delay IS NULL THEN 1.0 ELSE 0.0 END), 0) AS percent
FROM flights [FROM '2013-02-08' TO '2013-02-10']
GROUP BY carrier
HAVING count(*) >= 30
ORDER BY percent DESC, carrier;

-- Snapshot of the weather, over the same days.
CREATE CONTINUOUS QUERY storm_weather AS
SELECT origin, round(max(gust), 0) AS gust, min(visibility) AS visibility, min(temp) AS coldest,
       round(sum(precip), 2) AS inches
FROM weather [FROM '2013-02-08' TO '2013-02-10']
GROUP BY origin;
