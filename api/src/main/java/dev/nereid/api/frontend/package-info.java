/** Rules that every front end applies: restrictions, connection limits, parameters, forwarded headers, caches. */
@NullMarked
package dev.nereid.api.frontend;

import org.jspecify.annotations.NullMarked;
