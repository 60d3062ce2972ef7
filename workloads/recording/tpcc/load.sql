-- The population of clause 4.3.3 of TPC-C. psql is given `warehouses` and `seed` (0 to 1).

SELECT setseed(:seed);

INSERT INTO item SELECT i, random_int(1, 10000), a_string(14, 24), random_int(100, 10000) / 100.0, item_data()
    FROM generate_series(1, 100000) AS i;

INSERT INTO warehouse SELECT w, a_string(6, 10), a_string(10, 20), a_string(10, 20), a_string(10, 20), state(), zip(),
        random_rate(0.2), 300000
    FROM generate_series(1, :warehouses) AS w;

INSERT INTO stock SELECT i, w, random_int(10, 100), a_string(24, 24), a_string(24, 24), a_string(24, 24),
        a_string(24, 24), a_string(24, 24), a_string(24, 24), a_string(24, 24), a_string(24, 24), a_string(24, 24),
        a_string(24, 24), 0, 0, 0, item_data()
    FROM generate_series(1, :warehouses) AS w, generate_series(1, 100000) AS i;

INSERT INTO district SELECT d, w, a_string(6, 10), a_string(10, 20), a_string(10, 20), a_string(10, 20), state(), zip(),
        random_rate(0.2), 30000, 3001
    FROM generate_series(1, :warehouses) AS w, generate_series(1, 10) AS d;

-- The first thousand customers of a district have each last name once.
INSERT INTO customer SELECT c, d, w, a_string(8, 16), 'OE',
        last_name(CASE WHEN c <= 1000 THEN c - 1 ELSE nurand(255, 100, 0, 999) END), a_string(10, 20),
        a_string(10, 20), a_string(10, 20), state(), zip(), n_string(16), now(),
        CASE WHEN random() < 0.1 THEN 'BC' ELSE 'GC' END, 50000, random_rate(0.5), -10, 10, 1, 0, a_string(300, 500)
    FROM generate_series(1, :warehouses) AS w, generate_series(1, 10) AS d, generate_series(1, 3000) AS c;

INSERT INTO history SELECT c_id, c_d_id, c_w_id, c_d_id, c_w_id, now(), 10, a_string(12, 24) FROM customer;

-- The customers of a district order once each, in random order; the last 900 orders are not delivered yet.
INSERT INTO orders SELECT row_number() OVER (PARTITION BY c_w_id, c_d_id ORDER BY random()), c_d_id, c_w_id, c_id,
        now(), NULL, random_int(5, 15), 1
    FROM customer;
UPDATE orders SET o_carrier_id = random_int(1, 10) WHERE o_id < 2101;

INSERT INTO order_line SELECT o_id, o_d_id, o_w_id, number, random_int(1, 100000), o_w_id,
        CASE WHEN o_id < 2101 THEN o_entry_d END, 5,
        CASE WHEN o_id < 2101 THEN 0 ELSE random_int(1, 999999) / 100.0 END, a_string(24, 24)
    FROM orders, generate_series(1, o_ol_cnt) AS number ORDER BY o_w_id, o_d_id, o_id, number;

INSERT INTO new_order SELECT o_id, o_d_id, o_w_id FROM orders WHERE o_id >= 2101;
