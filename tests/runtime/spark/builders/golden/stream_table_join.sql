-- stage 0, round 0: SaveRows
--   reads d_1: TopicInput orders
SELECT k0 AS k0, c0 AS c0, c1 AS c1, c2 AS c2, c3 AS c3, IF(present, ts, NULL) AS c4, IF(present, part, NULL) AS c5, IF(present, off, NULL) AS c6, k0 AS c7, present, ts, part, off, bad, hdr
FROM (
  SELECT k0, c0, c1, c2, c3, NOT tombstone AS present, ts AS ts, part, off, bad, hdr
  FROM d_1
);

-- stage 1, round 1: Append
--   reads h_2: SavedRows 0
--   reads l_3: TableLookup USERS 0
--   reads o_4: ObjectInput USERS
SELECT k0, c0, c1, present, ts AS ts, part, off, bad, hdr
FROM (
  SELECT k0 AS k0, c2 AS c0, c8 AS c1, present, ts, part, off, bad, hdr
  FROM (
    SELECT l.k0, l.c0, l.c1, l.c2, l.c3, l.c4, l.c5, l.c6, l.c7, r.a0 AS c8, r.a1 AS c9, r.a2 AS c10, r.a3 AS c11, r.a4 AS c12, r.a5 AS c13, l.present, l.ts, l.part, l.off, l.bad, l.hdr
    FROM (
      SELECT *
      FROM (
        SELECT *, 0 AS bad
        FROM h_2
      )
      WHERE present
    ) l
    JOIN (
      SELECT *
      FROM (
        SELECT k0, b_present, b0 AS b0, b1 AS b1, b_ts AS b2, CAST(NULL AS INT) AS b3, CAST(NULL AS BIGINT) AS b4, k0 AS b5, b_ts, a_present, a0 AS a0, a1 AS a1, a_ts AS a2, CAST(NULL AS INT) AS a3, CAST(NULL AS BIGINT) AS a4, k0 AS a5, a_ts
        FROM (
          SELECT h.k0, coalesce(d.b_present, f.ts IS NOT NULL) AS b_present, IF(d.a_present IS NULL, f.c0, d.b0) AS b0, IF(d.a_present IS NULL, f.c1, d.b1) AS b1, IF(d.a_present IS NULL, f.ts, d.b_ts) AS b_ts, coalesce(d.a_present, f.ts IS NOT NULL) AS a_present, IF(d.a_present IS NULL, f.c0, d.a0) AS a0, IF(d.a_present IS NULL, f.c1, d.a1) AS a1, IF(d.a_present IS NULL, f.ts, d.a_ts) AS a_ts
          FROM (
            SELECT DISTINCT k0
            FROM h_2
          ) h
          LEFT JOIN o_4 d ON h.k0 = d.k0
          LEFT JOIN l_3 f ON h.k0 = f.k0
        )
      )
      WHERE a_present
    ) r ON l.k0 = r.k0
  )
);
