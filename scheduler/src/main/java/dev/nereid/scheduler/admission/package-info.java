/** Admission control: requests and bytes in flight, and the limits on them. */
@NullMarked
package dev.nereid.scheduler.admission;

import org.jspecify.annotations.NullMarked;
