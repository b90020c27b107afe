/**
 * Example backends of pipelines for texts.
 *
 * <p>Starting points: {@link dev.nereid.examples.text.Tokenize}, which turns characters into numbers, and
 * {@link dev.nereid.examples.text.Decode}, which turns the results of a network into characters.
 */
@NullMarked
package dev.nereid.examples.text;

import org.jspecify.annotations.NullMarked;
