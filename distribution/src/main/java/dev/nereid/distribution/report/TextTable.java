package dev.nereid.distribution.report;

import java.util.ArrayList;
import java.util.List;

/** A text table with columns as wide as their widest cell. Confined to one thread. */
public final class TextTable {
    private static final String GAP = "  ";

    private final List<List<String>> rows = new ArrayList<>();

    public TextTable(String... header) {
        rows.add(List.of(header));
    }

    /** Adds a row with as many cells as the header has. Line breaks and control characters become blanks. */
    public void add(String... cells) {
        if (cells.length != rows.getFirst().size()) {
            throw new IllegalArgumentException(
                    "cells: " + cells.length + " (expected: " + rows.getFirst().size() + ")");
        }
        List<String> row = new ArrayList<>();
        for (String cell : cells) {
            row.add(PrintableText.of(cell));
        }
        rows.add(row);
    }

    /** Returns the table, a line for each row, without blanks at the ends of lines. */
    @Override
    public String toString() {
        int[] widths = new int[rows.getFirst().size()];
        for (List<String> row : rows) {
            for (int i = 0; i < widths.length; i++) {
                widths[i] = Math.max(widths[i], row.get(i).length());
            }
        }
        StringBuilder text = new StringBuilder();
        for (List<String> row : rows) {
            StringBuilder line = new StringBuilder();
            for (int i = 0; i < widths.length; i++) {
                line.append(row.get(i))
                        .repeat(' ', widths[i] - row.get(i).length())
                        .append(GAP);
            }
            text.append(line.toString().stripTrailing()).append('\n');
        }
        return text.toString();
    }
}
