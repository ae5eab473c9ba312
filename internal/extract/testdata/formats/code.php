<?php
namespace App\Printing;

/**
 * Prints.
 */
final class Printer extends Base
{
    public static function printAll(array $names): void
    {
        if (count($names)) {
            $f = function ($x) { return $x; };
        }
    }
}

function helper() {
}
