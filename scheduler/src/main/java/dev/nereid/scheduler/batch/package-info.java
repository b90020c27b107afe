/** Batches: their formation, and the view by which a backend reads and completes their requests. */
@NullMarked
package dev.nereid.scheduler.batch;

import org.jspecify.annotations.NullMarked;
