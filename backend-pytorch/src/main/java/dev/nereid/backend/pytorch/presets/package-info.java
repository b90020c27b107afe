/**
 * PyTorch through the presets of JavaCPP; their types stay in this package.
 *
 * <p>Starting points: {@link dev.nereid.backend.pytorch.presets.TorchLibrary}, {@link
 * dev.nereid.backend.pytorch.presets.TorchModule}.
 */
@NullMarked
package dev.nereid.backend.pytorch.presets;

import org.jspecify.annotations.NullMarked;
