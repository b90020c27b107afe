package dev.nereid.distribution.report;

import dev.nereid.server.memory.TensorMemoryBound;

/**
 * Memory limits in the start-up report. Immutable.
 *
 * @param heapBytes how large the heap may become
 * @param tensors how much memory tensors may take
 * @param inFlightBytes how many bytes the inputs in flight may have; 0 for any number
 */
public record MemoryReport(long heapBytes, TensorMemoryBound tensors, long inFlightBytes) {
    /** Returns the limits as a table, and what is wrong with them. */
    String text() {
        TextTable table = new TextTable("MEMORY", "BYTES", "SET BY");
        table.add("heap", String.valueOf(heapBytes), "-Xmx");
        table.add("tensors", String.valueOf(tensors.bytes()), "--tensor-memory-pool-byte-size");
        table.add("in flight", inFlightBytes == 0 ? "any" : String.valueOf(inFlightBytes), "--max-inflight-bytes");
        return table + (tensors.shortage().isEmpty() ? "" : "Little memory for tensors: " + tensors.shortage() + "\n");
    }
}
