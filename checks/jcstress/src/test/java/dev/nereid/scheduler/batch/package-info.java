/** Stress tests of the lock-free classes of the package of the same name. */
@NullMarked
package dev.nereid.scheduler.batch;

import org.jspecify.annotations.NullMarked;
