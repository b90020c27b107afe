package dev.nereid.attacks;

import java.util.List;

/** Checks that a refusal for full memory was justified. Stateless. */
final class FullMemory {
    private static final List<String> TEXTS = List.of("no memory", "out of memory", "bytes in flight");

    /** Allowance for memory that was released between a refusal and its check. */
    private static final double NEARLY_FULL = 0.5;

    private FullMemory() {}

    /** Returns whether a text reports full memory while tensor memory was nearly full. */
    static boolean explains(String text, VictimServer server) {
        return TEXTS.stream().anyMatch(text::contains)
                && (text.contains("are in use") || server.tensorBytes() > NEARLY_FULL * VictimServer.TENSORS);
    }
}
