package dev.nereid.server.repository;

import inference.ModelConfig;
import java.util.NavigableSet;

/**
 * A model whose configuration was read and whose versions are known, before its backend is asked. Immutable.
 *
 * @param directory its folder
 * @param config its configuration, completed from the names of its files, normalized and checked so far
 * @param configured whether there is a configuration file
 * @param versions the versions to be loaded, at least one
 */
record PreparedModel(ModelDirectory directory, ModelConfig config, boolean configured, NavigableSet<Long> versions) {}
