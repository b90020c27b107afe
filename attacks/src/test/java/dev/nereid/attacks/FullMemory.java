package dev.nereid.attacks;

import java.util.List;

/** Whether a refusal tells that memory was full, and it was. Stateless. */
final class FullMemory {
    private static final List<String> TEXTS = List.of("no memory", "out of memory", "bytes in flight");

    /** What is in use when a refusal is looked into is less than what was when it was made. */
    private static final double NEARLY_FULL = 0.5;

    private FullMemory() {}

    /** Says whether a text tells of full memory, while the memory for tensors was nearly full. */
    static boolean explains(String text, VictimServer server) {
        return TEXTS.stream().anyMatch(text::contains)
                && (text.contains("are in use") || server.tensorBytes() > NEARLY_FULL * VictimServer.TENSORS);
    }
}
