package dev.nereid.cache.redis;

/** Address of a Redis database. Immutable. */
record RedisAddress(String host, int port, int database) {}
