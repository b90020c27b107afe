/** Stress tests of the leases on generations. */
@NullMarked
package dev.nereid.server.lifecycle;

import org.jspecify.annotations.NullMarked;
