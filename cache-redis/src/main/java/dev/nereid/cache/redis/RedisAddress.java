package dev.nereid.cache.redis;

/**
 * Address of a Redis database. Immutable.
 *
 * @param database the number of the database
 */
record RedisAddress(String host, int port, int database) {}
