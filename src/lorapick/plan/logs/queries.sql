-- What `lorapick plan pins` wants to know about request logs, for a warehouse that holds too many of them to be copied.
--
-- 1. Make a view `requests` with one row for each request of the last :days days:
--
--      adapter        text      name of the LoRA adapter; '' or NULL: the base model
--      time_seconds   double    arrival, in seconds since 1970 (UTC)
--      prompt_tokens  integer   NULL where it is unknown
--      output_tokens  integer   NULL where it is unknown
--
--    BigQuery:
--      CREATE VIEW requests AS SELECT lora AS adapter, UNIX_MICROS(ts) / 1000000.0 AS time_seconds, prompt_tokens,
--        output_tokens FROM logs WHERE ts >= TIMESTAMP_SUB(CURRENT_TIMESTAMP(), INTERVAL :days DAY)
--    Snowflake:
--      CREATE VIEW requests AS SELECT lora AS adapter, DATE_PART(EPOCH_MICROSECOND, ts) / 1000000.0::DOUBLE
--        AS time_seconds, prompt_tokens, output_tokens FROM logs WHERE ts >= DATEADD(DAY, -:days, CURRENT_TIMESTAMP())
--    PostgreSQL:
--      CREATE VIEW requests AS SELECT lora AS adapter, CAST(EXTRACT(EPOCH FROM ts) AS double precision)
--        AS time_seconds, prompt_tokens, output_tokens FROM logs WHERE ts >= now() - INTERVAL ':days days'
--    ClickHouse:
--      CREATE VIEW requests AS SELECT lora AS adapter, toUnixTimestamp64Micro(ts) / 1000000.0 AS time_seconds,
--        prompt_tokens, output_tokens FROM logs WHERE ts >= now() - INTERVAL :days DAY
--
-- 2. Run the three statements, and save each result as CSV with a line of column names, in one folder:
--    adapters.csv, hours.csv, sample.csv. With PostgreSQL's psql, for one: \copy (SELECT ...) TO 'adapters.csv' CSV HEADER
--
-- 3. lorapick plan pins --counted FOLDER
--
-- The statements are the ones that lorapick itself runs on files.

-- statement: adapters
-- One row for each adapter. `squares` is the sum, over minutes, of the square of its requests in that minute.
WITH minutes AS (
    SELECT adapter, FLOOR(time_seconds / 60.0) AS minute_number, COUNT(*) AS minute_requests
    FROM requests
    WHERE time_seconds IS NOT NULL
    GROUP BY adapter, FLOOR(time_seconds / 60.0)
),
peaks AS (
    SELECT adapter, MAX(minute_requests) AS peak_minute, SUM(minute_requests * minute_requests) AS squares
    FROM minutes
    GROUP BY adapter
),
totals AS (
    SELECT
        adapter,
        COUNT(time_seconds) AS request_count,
        COUNT(*) - COUNT(time_seconds) AS without_time,
        MIN(time_seconds) AS first_seconds,
        MAX(time_seconds) AS last_seconds,
        COUNT(CASE WHEN time_seconds IS NOT NULL THEN prompt_tokens END) AS prompt_count,
        SUM(CASE WHEN time_seconds IS NOT NULL THEN prompt_tokens END) AS prompt_sum,
        COUNT(CASE WHEN time_seconds IS NOT NULL THEN output_tokens END) AS output_count,
        SUM(CASE WHEN time_seconds IS NOT NULL THEN output_tokens END) AS output_sum
    FROM requests
    GROUP BY adapter
)
SELECT
    totals.adapter AS adapter,
    totals.request_count AS request_count,
    totals.without_time AS without_time,
    totals.first_seconds AS first_seconds,
    totals.last_seconds AS last_seconds,
    peaks.peak_minute AS peak_minute,
    peaks.squares AS squares,
    totals.prompt_count AS prompt_count,
    totals.prompt_sum AS prompt_sum,
    totals.output_count AS output_count,
    totals.output_sum AS output_sum
FROM totals
LEFT JOIN peaks ON peaks.adapter = totals.adapter
ORDER BY request_count DESC;

-- statement: hours
-- One row for each hour in which an adapter was asked for.
WITH cells AS (
    SELECT FLOOR(time_seconds / 3600.0) AS hour_number, adapter, COUNT(*) AS cell_requests
    FROM requests
    WHERE time_seconds IS NOT NULL AND adapter <> ''
    GROUP BY FLOOR(time_seconds / 3600.0), adapter
)
SELECT
    hour_number * 3600 AS hour_start,
    SUM(cell_requests) AS request_count,
    COUNT(*) AS adapter_count
FROM cells
GROUP BY hour_number
ORDER BY hour_number;

-- statement: sample
-- The requests for adapters in the busiest hour. Where it has more than :sample, those of the stretch within it that
-- has the most per second of all that hold :sample, or as near to as many as requests of one time allow.
WITH hours AS (
    SELECT FLOOR(time_seconds / 3600.0) AS hour_number, COUNT(*) AS hour_requests
    FROM requests
    WHERE time_seconds IS NOT NULL AND adapter <> ''
    GROUP BY FLOOR(time_seconds / 3600.0)
),
busiest AS (
    SELECT hour_number, hour_requests
    FROM hours
    ORDER BY hour_requests DESC, hour_number
    LIMIT 1
),
asked AS (
    SELECT
        requests.adapter AS adapter,
        requests.time_seconds AS time_seconds,
        requests.prompt_tokens AS prompt_tokens,
        requests.output_tokens AS output_tokens,
        busiest.hour_number * 3600 AS hour_start,
        busiest.hour_requests AS hour_requests,
        RANK() OVER (ORDER BY requests.time_seconds) AS place,
        ROW_NUMBER() OVER (ORDER BY requests.time_seconds) AS line_number
    FROM requests
    CROSS JOIN busiest
    WHERE FLOOR(requests.time_seconds / 3600.0) = busiest.hour_number AND requests.adapter <> ''
),
followed AS (
    SELECT
        place,
        line_number,
        hour_start,
        hour_requests,
        time_seconds,
        LEAD(time_seconds, :sample) OVER (ORDER BY time_seconds) AS next_seconds,
        LEAD(place, :sample) OVER (ORDER BY time_seconds) AS next_place
    FROM asked
),
stretches AS (
    SELECT
        CASE WHEN hour_requests <= :sample THEN hour_start ELSE time_seconds END AS from_seconds,
        COALESCE(next_seconds, hour_start + 3600) AS until_seconds,
        COALESCE(next_place, hour_requests + 1) - place AS stretch_requests
    FROM followed
    WHERE place = line_number AND (place = 1 OR place + :sample <= hour_requests + 1)
),
chosen AS (
    SELECT from_seconds, until_seconds
    FROM stretches
    WHERE until_seconds > from_seconds
    ORDER BY 1.0 * stretch_requests / (until_seconds - from_seconds) DESC, from_seconds
    LIMIT 1
)
SELECT
    asked.time_seconds AS time_seconds,
    asked.adapter AS adapter,
    asked.prompt_tokens AS prompt_tokens,
    asked.output_tokens AS output_tokens,
    chosen.from_seconds AS from_seconds,
    chosen.until_seconds AS until_seconds
FROM asked
CROSS JOIN chosen
WHERE asked.time_seconds >= chosen.from_seconds AND asked.time_seconds < chosen.until_seconds
ORDER BY time_seconds, adapter;
