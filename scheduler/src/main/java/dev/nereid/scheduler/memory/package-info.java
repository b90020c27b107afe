/**
 * Memory of tensors: reference counts, places, and copies between them.
 *
 * <p>Starting point: {@link dev.nereid.scheduler.memory.ReferenceCountedMemory}, in which tensors lie.
 */
@NullMarked
package dev.nereid.scheduler.memory;

import org.jspecify.annotations.NullMarked;
