package dev.nereid.scheduler.oracle;

/**
 * A hold of all batches until requests wait.
 *
 * @param requests the number of requests of sequences with a slot
 */
record SequenceHold(int requests, int backlogged) {
    /**
     * Returns whether enough requests wait.
     *
     * @param waiting all requests
     */
    boolean isOver(int waiting, SequenceList backlog) {
        int behind = 0;
        for (LiveSequence one = backlog.first(); one != null; one = one.next) {
            for (SequenceEntry entry = one.head(); entry != null; entry = entry.next) {
                behind++;
            }
        }
        return waiting - behind >= requests && behind >= backlogged;
    }
}
