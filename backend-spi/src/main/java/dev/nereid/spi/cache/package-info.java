/**
 * The SPI of response caches, used together with {@link dev.nereid.spi}.
 *
 * <p>Starting point: {@link dev.nereid.spi.cache.CacheProvider}, which leads to
 * {@link dev.nereid.spi.cache.ResponseCache}. A cache keeps opaque bytes under keys; what the bytes mean is the
 * server's.
 *
 * <p>Interfaces marked <em>implemented by the server</em> may gain methods in a minor version of the SPI; interfaces
 * marked <em>implemented by caches</em> gain {@code default} methods only.
 */
@NullMarked
package dev.nereid.spi.cache;

import org.jspecify.annotations.NullMarked;
