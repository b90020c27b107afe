/** Stress tests of the entries of the local cache. */
@NullMarked
package dev.nereid.server.cache;

import org.jspecify.annotations.NullMarked;
