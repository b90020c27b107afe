/**
 * Loads of models on demand, within a memory budget. Starting points: {@link dev.nereid.server.demand.DemandModels},
 * {@link dev.nereid.server.demand.MemoryPlanner}.
 */
@NullMarked
package dev.nereid.server.demand;

import org.jspecify.annotations.NullMarked;
