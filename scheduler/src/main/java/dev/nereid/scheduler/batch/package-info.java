/** Batches: which requests go together, and how a backend sees and completes them. */
@NullMarked
package dev.nereid.scheduler.batch;

import org.jspecify.annotations.NullMarked;
