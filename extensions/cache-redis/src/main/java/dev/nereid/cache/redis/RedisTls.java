package dev.nereid.cache.redis;

import java.io.File;

/**
 * TLS settings of connections to Redis. Immutable.
 *
 * @param enabled whether connections are encrypted
 * @param certificate the server's own certificate, in PEM; an empty path for none
 * @param key its key; an empty path for none
 * @param authority the authorities of Redis' certificate, in PEM; an empty path for the JDK's trust store
 * @param serverName the name that Redis' certificate is for; empty for the host
 */
record RedisTls(boolean enabled, File certificate, File key, File authority, String serverName) {}
