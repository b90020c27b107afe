package dev.nereid.distribution.report;

import dev.nereid.server.memory.TensorMemoryBound;

/**
 * Memory limits in the start-up report. Immutable.
 *
 * @param heapBytes the maximum size of the heap
 * @param tensors the limit of tensor memory
 * @param inFlightBytes the limit of input bytes in flight; 0 for no limit
 */
public record MemoryReport(long heapBytes, TensorMemoryBound tensors, long inFlightBytes) {
    /** Returns the limits as a table, and a line about a shortage. */
    String text() {
        TextTable table = new TextTable("MEMORY", "BYTES", "SET BY");
        table.add("heap", String.valueOf(heapBytes), "-Xmx");
        table.add("tensors", String.valueOf(tensors.bytes()), "--tensor-memory-pool-byte-size");
        table.add("in flight", inFlightBytes == 0 ? "any" : String.valueOf(inFlightBytes), "--max-inflight-bytes");
        return table + (tensors.shortage().isEmpty() ? "" : "Little memory for tensors: " + tensors.shortage() + "\n");
    }
}
