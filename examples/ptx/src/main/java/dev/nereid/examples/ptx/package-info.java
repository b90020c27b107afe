/**
 * An example of a backend on GPUs: it runs a kernel of CUDA with nothing but the driver.
 *
 * <p>Starting points: {@link dev.nereid.examples.ptx.PtxBackendProvider}, named in the jar's {@code META-INF/services},
 * and {@link dev.nereid.examples.ptx.PtxInstance}, which does the work.
 */
@NullMarked
package dev.nereid.examples.ptx;

import org.jspecify.annotations.NullMarked;
