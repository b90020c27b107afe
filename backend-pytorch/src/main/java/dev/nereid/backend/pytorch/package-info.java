/**
 * The backend for models in TorchScript.
 *
 * <p>Starting points: {@link dev.nereid.backend.pytorch.PyTorchBackendProvider}; {@code PyTorchInstance}, which executes
 * batches.
 */
@NullMarked
package dev.nereid.backend.pytorch;

import org.jspecify.annotations.NullMarked;
