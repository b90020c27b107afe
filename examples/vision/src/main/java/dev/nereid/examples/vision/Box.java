package dev.nereid.examples.vision;

/**
 * A rectangle in a picture, in pixels from the upper left corner. Immutable.
 *
 * @param top the upper edge
 * @param bottom the lower edge
 */
record Box(double left, double top, double right, double bottom) {
    double area() {
        return Math.max(0, right - left) * Math.max(0, bottom - top);
    }

    /** Returns the part that lies within a picture; its area may be 0. */
    Box within(Picture picture) {
        return new Box(
                Math.clamp(left, 0, picture.width()),
                Math.clamp(top, 0, picture.height()),
                Math.clamp(right, 0, picture.width()),
                Math.clamp(bottom, 0, picture.height()));
    }

    /** Returns the common area of two rectangles, divided by the area that they cover together. */
    double overlap(Box other) {
        double common = new Box(
                        Math.max(left, other.left),
                        Math.max(top, other.top),
                        Math.min(right, other.right),
                        Math.min(bottom, other.bottom))
                .area();
        double all = area() + other.area() - common;
        return all > 0 ? common / all : 0;
    }
}
