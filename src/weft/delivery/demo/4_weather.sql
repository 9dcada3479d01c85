-- Weather, and what it does to flights.

-- The daily weather report.
CREATE CONTINUOUS QUERY weather_daily AS
SELECT origin, min(temp) AS coldest, max(temp) AS warmest, round(sum(precip), 2) AS inches,
       round(max(gust), 0) AS gust
FROM weather [RANGE 1 DAY SLIDE 1 DAY]
GROUP BY origin;

-- Now, at each airport.
CREATE CONTINUOUS QUERY weather_now AS
SELECT origin, at, temp, wind, visibility
FROM weather [RANGE 1 HOUR];

-- Spells of bad visibility, which end after three better hours.
CREATE CONTINUOUS QUERY low_visibility_spells AS
SELECT origin, count(*) AS hours, min(visibility) AS worst
FROM weather
WHERE visibility < 3
GROUP BY origin, session_window(at, '3 hours');

-- Two streams, one window: hours with their weather.
CREATE CONTINUOUS QUERY delay_and_wind AS
SELECT f.origin, count(*) AS departures, round(avg(f.dep_delay), 1) AS delay,
       round(max(w.wind), 0) AS wind, min(w.visibility) AS visibility
FROM flights [RANGE 1 HOUR SLIDE 1 HOUR] AS f
JOIN weather [RANGE 1 HOUR SLIDE 1 HOUR] AS w ON f.origin = w.origin
GROUP BY f.origin;

-- Two sliding windows, row by row: departures of the last day in near-freezing rain or snow.
CREATE CONTINUOUS QUERY icing_conditions AS
SELECT f.carrier, f.flight, f.origin, f.scheduled, w.temp, w.precip
FROM flights [RANGE 1 DAY] AS f
JOIN weather [RANGE 1 DAY] AS w
  ON f.origin = w.origin AND date_trunc('HOUR', f.scheduled) = w.at
WHERE w.temp <= 37 AND w.precip > 0.02 AND f.dep_delay IS NOT NULL;

-- How wind and delay go together.
CREATE CONTINUOUS QUERY wind_and_delay AS
SELECT f.origin, round(corr(w.wind, f.dep_delay), 2) AS correlation, count(*) AS flights
FROM flights [RANGE 1 DAY SLIDE 1 DAY] AS f
JOIN weather [RANGE 1 DAY SLIDE 1 DAY] AS w
  ON f.origin = w.origin AND date_trunc('HOUR', f.scheduled) = w.at
GROUP BY f.origin;

-- PSoup's clause gives both streams the same window.
CREATE CONTINUOUS QUERY blind_departures AS
SELECT f.origin, count(*) AS departures
FROM flights AS f JOIN weather AS w
  ON f.origin = w.origin AND date_trunc('HOUR', f.scheduled) = w.at
WHERE w.visibility < 2 AND f.dep_delay IS NOT NULL
GROUP BY f.origin
BEGIN NOW - 24 HOURS END NOW;
