/**
 * The files of models, as far as they are scanned before PyTorch reads them.
 *
 * <p>Starting point: {@link dev.nereid.backend.pytorch.archive.TorchFile}.
 */
@NullMarked
package dev.nereid.backend.pytorch.archive;

import org.jspecify.annotations.NullMarked;
