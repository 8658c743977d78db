SELECT k0, k1, k2, part, count_if(dropped) AS late, max(observed) FILTER (WHERE dropped) AS time, max_by(IF(tombstone, ts, NULL), off) FILTER (WHERE NOT dropped) AS deleted
FROM (
  SELECT *, window_time <= observed - 3600000 AS dropped
  FROM (
    SELECT k0, k1, k2, d.part, off, ts, tombstone, k1 AS window_time, greatest(so_far, o.time) AS observed
    FROM (
      SELECT *, max(k1) OVER (PARTITION BY part ORDER BY off ROWS UNBOUNDED PRECEDING) AS so_far
      FROM decoded
      WHERE bad = 0
    ) d
    LEFT JOIN observed o ON o.part = d.part
  )
)
GROUP BY k0, k1, k2, part HAVING count_if(dropped) > 0;
SELECT count(key) AS records, count_if((octet_length(key) < 12 OR holdfast.int_at(key, 4) <> 0)) AS misfits
FROM records;
