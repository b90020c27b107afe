package dev.nereid.backend.pytorch.archive;

/** Scans the source of a script, in pieces of any size. Confined to one file. */
final class CodeScan {
    private static final byte[] TRAINING = {'.', 't', 'r', 'a', 'i', 'n', 'i', 'n', 'g'};

    /** PyTorch's compiler calls itself for each bracket and sign, and would end the process where its stack ends. */
    private static final int MAX_NESTING = 10_000;

    private boolean readsTraining;
    private int matched;
    private int brackets;
    private int signs;

    /** Scans the next bytes; fails if brackets or signs are nested too deep. */
    void add(byte[] bytes, int length) throws TorchFileException {
        for (int i = 0; i < length; i++) {
            byte next = bytes[i];
            matched = next == TRAINING[matched] ? matched + 1 : next == TRAINING[0] ? 1 : 0;
            if (matched == TRAINING.length) {
                readsTraining = true;
                matched = 0;
            }
            switch (next) {
                case '(', '[', '{' -> brackets++;
                case ')', ']', '}' -> brackets = Math.max(0, brackets - 1);
                default -> {}
            }
            if (next == '-' || next == '~') {
                signs++;
            } else if (next != ' ') {
                signs = 0;
            }
            if (brackets > MAX_NESTING || signs > MAX_NESTING) {
                throw new TorchFileException("its code has more than " + MAX_NESTING
                        + " brackets or signs within another (expected: fewer)");
            }
        }
    }

    /** Returns whether the source asks for the mode of training. */
    boolean readsTraining() {
        return readsTraining;
    }
}
