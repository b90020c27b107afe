/** Rules that every front end applies: restrictions and connection limits. */
@NullMarked
package dev.nereid.api.frontend;

import org.jspecify.annotations.NullMarked;
