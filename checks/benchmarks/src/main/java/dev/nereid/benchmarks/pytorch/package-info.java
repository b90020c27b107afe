/**
 * Models of PyTorch beside calls of the same modules from a loop.
 *
 * <p>Starting point: {@link dev.nereid.benchmarks.pytorch.PyTorchSection}.
 */
@NullMarked
package dev.nereid.benchmarks.pytorch;

import org.jspecify.annotations.NullMarked;
