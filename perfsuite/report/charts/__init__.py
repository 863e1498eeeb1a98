"""Drawing as SVG: the pieces that the page's figures share with pictures, and charts as files of their own."""
