/** The queues of sequences before they shared locks, threads and wake-ups with the other queues, to compare with. */
@NullMarked
package dev.nereid.scheduler.oracle;

import org.jspecify.annotations.NullMarked;
