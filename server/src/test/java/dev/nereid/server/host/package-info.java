/** Tests of host policies. */
@NullMarked
package dev.nereid.server.host;

import org.jspecify.annotations.NullMarked;
