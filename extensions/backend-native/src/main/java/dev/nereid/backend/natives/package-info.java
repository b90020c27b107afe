/**
 * Code that backends with native libraries share. Each plugin has a copy of these classes in its own class loader.
 *
 * <p>Starting points: {@link dev.nereid.backend.natives.LibraryDirectory} finds the native libraries of a framework and
 * unpacks them, {@link dev.nereid.backend.natives.HostMachine} is the machine that they must be built for,
 * {@link dev.nereid.backend.natives.ReferenceCount} decides when a native object may be released,
 * {@link dev.nereid.backend.natives.OptionValues} reads the options of a backend or a model, and
 * {@link dev.nereid.backend.natives.TensorChecks} compares a configuration with a model.
 */
@NullMarked
package dev.nereid.backend.natives;

import org.jspecify.annotations.NullMarked;
