/**
 * Reads TensorFlow's files with the messages of TensorFlow Java, before anything native is loaded.
 *
 * <p>Starting points: {@link dev.nereid.backend.tensorflow.graph.SavedModelReader} and {@link
 * dev.nereid.backend.tensorflow.graph.GraphDefReader} return a {@link dev.nereid.backend.tensorflow.graph.GraphModel}.
 * This package alone uses protobuf, in the version of the plugin's own class loader.
 */
@NullMarked
package dev.nereid.backend.tensorflow.graph;

import org.jspecify.annotations.NullMarked;
