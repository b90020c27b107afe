/** Stress tests of the entries of the local cache. */
@NullMarked
package dev.nereid.plugin.cache;

import org.jspecify.annotations.NullMarked;
